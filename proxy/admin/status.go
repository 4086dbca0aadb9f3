package admin

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
)

// Status is what there is to know about a running proxy.
type Status struct {
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Ready     bool      `json:"ready"`
	Listen    string    `json:"listen"`
	OpenAI    string    `json:"upstream_openai"`
	Anthropic string    `json:"upstream_anthropic"`
	Identity  string    `json:"identity_mode"`

	Memory Memory              `json:"memory"`
	Queue  capture.QueueStatus `json:"queue"`
}

// Memory says in words whether the memory works.
type Memory struct {
	Backend string `json:"backend"` // embedded, graphiti or off
	Where   string `json:"where,omitempty"`
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"`    // what does not work
	Remedy  string `json:"remedy,omitempty"` // what to do about it
	Recall  bool   `json:"recall"`

	// For which endpoint consent was given, and since when it counts.
	ConsentFor   string     `json:"consent_for,omitempty"`
	ConsentSince *time.Time `json:"consent_since,omitempty"`
	Ingest       bool       `json:"ingest"`

	// Emptied counts the messages of conversations whose block was emptied by
	// memory forget: those conversations get none any more.
	Emptied int `json:"emptied_blocks,omitempty"`
}

// State says in one word how the memory is.
type State string

// The states of a memory.
const (
	StateWorking State = "working"
	StateTrouble State = "trouble"
	StateOff     State = "off"
)

// public is what may be told without the token: no address, no path.
func (m Memory) public() Memory {
	m.Where, m.ConsentFor = "", ""
	return m
}
