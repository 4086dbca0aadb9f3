// Package inspector owns the pages in which people look at their memory: what was kept,
// what was shown and why, what passes, and who may have it changed. They are HTML that
// the server renders, with their styles and scripts in the binary.
//
// It must not know who may see what: package admin lets visitors in and says who they are.
// Nor may it know what an operation does: it runs those of package service and shows what
// they return. Of our packages it may import service, and those whose types operations
// have.
package inspector
