package service

import (
	"context"
	"errors"
)

// PeopleRequest is the input of Everybody.
type PeopleRequest struct {
	Limit int `json:"limit,omitempty"`
}

// Crowd lists everybody who has a memory, or may have one.
type Crowd struct {
	People    []Somebody `json:"people"`
	AllPeople int        `json:"all_people"`
	Groups    []string   `json:"-"`
}

// Somebody is a person, a credential that nobody is registered for, or a system actor.
type Somebody struct {
	Name     string   `json:"name"`
	Means    Selector `json:"selector"` // how operations name them
	Memories int      `json:"memories"` // groups that hold something of theirs
	Projects int      `json:"projects"`
	Last     string   `json:"last,omitempty"`

	Registered bool   `json:"registered,omitempty"`
	Admin      bool   `json:"admin,omitempty"`
	Off        bool   `json:"memory_off,omitempty"`
	Doubt      string `json:"doubt,omitempty"` // why they have no memory until somebody confirms them
}

// Everybody lists those who have a memory.
var Everybody = Operation[PeopleRequest, Crowd]{
	Spec:    Spec{Name: "memory/people", About: "Everybody who has a memory, and the registered people"},
	Default: PeopleRequest{Limit: 200},
	Run: func(context.Context, *Host, *PeopleRequest) (Crowd, error) {
		return Crowd{}, errors.New("not written yet")
	},
}
