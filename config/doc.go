// Package config owns the settings: their names, defaults and limits, the origin of each
// value, and the messages about wrong values.
package config
