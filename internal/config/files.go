package config

import (
	"bytes"
	"errors"
	"io/fs"

	"drydock.dev/drydock/internal/secretfile"
)

// SecretFile refuses an empty file.
func (b *builder) SecretFile(p pointer, name string) string {
	name = b.resolve(name)
	if !b.skipFiles {
		b.file(p, name)
	}
	return name
}

func (b *builder) file(p pointer, name string) []byte {
	if name == "" {
		return nil
	}
	data, err := secretfile.Read("the file", name, maxFileBytes)
	var long secretfile.TooLong
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.Fault(p, "file %q does not exist; create it or correct the name", name)
	case errors.Is(err, secretfile.ErrNotRegular):
		b.Fault(p, "file %q is not a regular file; correct the name", name)
	case errors.As(err, &long):
		b.Fault(p, "file %q is larger than %d bytes; correct the name", name, maxFileBytes)
	case err != nil:
		b.Fault(p, "file %q cannot be read (%s); correct the name or its permissions", name, cause(err))
	case len(bytes.TrimSpace(data)) == 0:
		b.Fault(p, "file %q is empty; write the secret into it", name)
	default:
		return data
	}
	return nil
}
