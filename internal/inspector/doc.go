// Package inspector owns the pages for people to see their memory: stored messages, blocks and
// the reasons for them, requests in progress, and changes by those who are allowed to make
// them. The server renders the pages as HTML, with styles and scripts from the binary. The
// components of the pages are in the .templ files. Package admin lets visitors in and
// identifies them.
package inspector

//go:generate go tool templ generate
