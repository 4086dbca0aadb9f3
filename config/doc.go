// Package config owns the settings: their names, defaults and limits, the origin of each
// value, and the messages about wrong values.
//
// It must not know what a setting does. It imports none of our packages, and only the
// commands import it.
package config
