package main

import (
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// readPeople reads the file of the registry; without one nobody is registered.
func readPeople(file string) ([]identity.Person, error) {
	if file == "" {
		return nil, nil
	}
	list, err := config.LoadPeople(file)
	if err != nil {
		return nil, err
	}
	people := make([]identity.Person, len(list))
	for i, p := range list {
		people[i] = identity.Person{ID: p.ID, Name: p.DisplayName, Off: !p.Memory, Identities: p.Identities, Keys: p.Keys}
	}
	return people, nil
}

// registered returns the name of a registered person.
func (a *app) registered(key string) (name string, ok bool) {
	if p := a.people.Registered(key); p != nil {
		return p.Name, true
	}
	return "", false
}
