// Package justsaid owns the search in what a person said so recently that a remote memory may
// not have worked it off: in the turns that wait in the outbox, and in those that left it
// a short while ago. It follows the outbox, so that it hears of the turns of all replicas,
// and a start is like any other look. It keeps them in a scratch file of the embedded
// memory, which finds and weighs them.
//
// Only messages of people are found, never answers. A group with a forget under way has
// nothing here; afterwards it is read anew from the outbox, which has forgotten by then.
//
// It must not know how a turn is delivered, nor what is shown of it. Of our packages it
// may import capture/ledger, graphiti and graphiti/embedded.
package justsaid
