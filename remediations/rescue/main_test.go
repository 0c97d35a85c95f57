package rescue

import (
	"testing"

	"drydock.dev/drydock/internal/soak"
)

func TestMain(m *testing.M) { soak.Histories(m) }
