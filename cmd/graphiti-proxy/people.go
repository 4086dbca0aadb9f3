package main

import (
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// readPeople makes the registry of people, or reads it again.
func (a *app) readPeople(file string) (*proxy.Registry, error) {
	if a.people == nil {
		a.people = &proxy.Registry{}
	}
	return a.people, a.reloadPeople(file)
}

// reloadPeople reads the file of the registry again. With a mistake in it the
// people stay who they are.
func (a *app) reloadPeople(file string) error {
	if file == "" || a.people == nil {
		return nil
	}
	list, err := config.LoadPeople(file)
	if err != nil {
		return err
	}
	people := make([]proxy.Person, len(list))
	for i, p := range list {
		people[i] = proxy.Person{ID: p.ID, Name: p.DisplayName, Off: !p.Memory, Identities: p.Identities, Keys: p.Keys}
	}
	a.people.Set(people)
	return nil
}
