// Package sock asks the kernel what net.Conn cannot tell: whether a peer has
// closed its side, and how many descriptors there are.
//
// It owns the calls that differ between operating systems. It must not know
// what is spoken over a connection. It imports nothing of ours.
package sock
