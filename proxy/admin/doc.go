// Package admin owns the second listener: health, metrics, the operations of package service
// over HTTP, and admission to them and to the pages of package inspector. The client listener
// reaches none of them. It stores no conversation text and no credential.
package admin
