// Package justsaid owns the search for messages so recent that a remote memory may not have processed
// them: the turns queued in the outbox, and turns that left it recently. It reads
// the outbox, so it finds the turns of all replicas, and reads all of it again after a
// start. It stores the messages in a scratch file of the embedded memory, which searches
// and ranks them.
//
// It finds only messages of people, never answers. During a forget it hides the group.
// Afterwards it reads the group from the outbox again, which has deleted the forgotten
// turns by then.
//
// It must not know how a turn is delivered or displayed. Of the module's packages it may
// import capture/ledger, graphiti and graphiti/embedded.
package justsaid
