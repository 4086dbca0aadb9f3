// Package justsaid owns the search for what people said so recently that a remote memory
// may not have worked it off. It searches the turns that wait in the outbox, and those
// that left it a short while ago. It reads the outbox, so it finds the turns of all
// replicas, and after a start it reads all of it again. It keeps the messages in a
// scratch file of the embedded memory, which searches and ranks them.
//
// It finds only messages of people, never answers. While a group is being forgotten it
// finds nothing in the group. Afterwards it reads the group from the outbox again, which
// has deleted the forgotten turns by then.
//
// It must not know how a turn is delivered, nor what is shown of it. Of our packages it
// may import capture/ledger, graphiti and graphiti/embedded.
package justsaid
