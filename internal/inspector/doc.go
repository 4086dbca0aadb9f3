// Package inspector owns the pages for people to see their memory: stored messages, blocks
// and the reasons for them, requests in progress, and changes by those who are allowed to
// make them. The server renders the pages as HTML, with styles and scripts from the binary.
// The components of the pages are in the .templ files.
//
// It must not know the permissions of visitors: package admin lets visitors in and
// identifies them. It must not know the effect of an operation either: it runs the
// operations of package service and shows their results. Of our packages it may import
// service, and the packages of the types that operations use.
package inspector

//go:generate go tool templ generate
