// Package config owns the settings: their names, defaults and limits, the origin of each
// value, and the messages about wrong values.
//
// It must not know the effect of a setting. It imports no other package of this module,
// and only the commands import it.
package config
