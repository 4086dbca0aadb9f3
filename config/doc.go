// Package config owns the settings: their names, defaults and limits, where
// each value came from, and the words with which a wrong one is refused.
//
// It must not know what a setting does. It imports none of our packages and is
// imported by the commands only.
package config
