// Package capture owns what comes out of an answer: it makes turns of answers, holds the
// turns whose end is awaited (tool loops, conversations that the provider holds, lanes
// of a WebSocket), and records the finished ones. The embedded memory takes a turn in
// its own file. For a remote memory a turn waits in an outbox until the memory is known
// to hold it.
//
// One bounded recorder (Pipeline, recorder.go) stands in front of both. It owns a turn
// from when it comes until it is on disk:
//
//   - A turn goes to the disk at once, with one wait for it. A turn that was recorded a
//     moment ago is skipped (recent.go), however often a client sends it; about all
//     others the record decides.
//   - A turn that cannot be written at once waits in RAM, within bounds (waiting.go), in
//     one of two lanes. The first holds turns that the disk did not take, and notes; the
//     second holds histories. One goroutine writes the first lane before each batch of
//     the second.
//   - Before a new turn is written the first lane is, so that the order within a
//     conversation stays. A new turn does not wait for histories.
//   - A turn that finds no room is refused and counted. The next request of a
//     conversation offers its history again if it could not be recorded. Turns and notes
//     that still wait when the process ends are lost, and Shutdown returns how many.
//
// It must not know of the client's connection, of an answer's bytes, or of how a
// request was changed; it never fails a request. Of our packages it may import
// dialect, graphiti (types and ids), its subpackages except capture/response,
// cache/sqlite, cache/redis and graphiti/words.
package capture
