// Package distil owns the distilling of facts: it decides when a conversation is sent to a
// model, asks the model, and checks the answers. docs/facts.md describes it for users.
//
// One goroutine works outside of requests. A model that is slow, fails or lies costs only its
// facts: the messages stay, and are sent again a bounded number of times.
package distil
