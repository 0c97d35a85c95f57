package apiserver

import (
	"testing"

	"drydock.dev/drydock/internal/soak"
)

func TestMain(m *testing.M) { soak.Main(m) }
