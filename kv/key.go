package kv

import "strings"

// A tuple key is the concatenation of its parts, each escaped and then ended by a 0x00 byte. Within
// a part 0x00 becomes 0x01 0x01 and 0x01 becomes 0x01 0x02, so the end mark sorts below every part
// byte and the byte order of keys is the order of the tuples.
const (
	partEnd    = '\x00'
	partEscape = '\x01'
)

// Key joins parts to one key. Keys sort as their tuples do, part by part, a tuple before its
// extensions; different tuples give different keys; and no key of n parts is a prefix of another
// key of n parts. Parts may hold any bytes and may be empty.
func Key(parts ...string) string {
	n := 0
	for _, p := range parts {
		n += len(p) + 1
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		for i := 0; i < len(p); i++ {
			switch p[i] {
			case partEnd:
				b = append(b, partEscape, 1)
			case partEscape:
				b = append(b, partEscape, 2)
			default:
				b = append(b, p[i])
			}
		}
		b = append(b, partEnd)
	}
	return string(b)
}

// Prefix returns what all keys start with whose first parts are the given ones; with no parts
// it is empty and matches every key.
func Prefix(parts ...string) string { return Key(parts...) }

// Parts takes a key apart that Key made. It returns nil for the empty key and for a text that Key
// cannot have made.
func Parts(key string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case partEnd:
			parts = append(parts, b.String())
			b.Reset()
			if i == len(key)-1 {
				return parts
			}
		case partEscape:
			i++
			if i == len(key) || key[i] != 1 && key[i] != 2 {
				return nil
			}
			b.WriteByte(key[i] - 1)
		default:
			b.WriteByte(key[i])
		}
	}
	return nil
}
