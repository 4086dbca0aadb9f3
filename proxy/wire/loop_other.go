//go:build !linux

package wire

import "log/slog"

// loops is empty: goroutines relay all streams.
type loops struct{}

func startLoops(*slog.Logger) *loops                { return new(loops) }
func (*loops) sweep()                               {}
func (*loops) close()                               {}
func (*loops) take(*stream, func(bool, error)) bool { return false }

type onLoop struct{}

func (*onLoop) cut(*stream) {}
