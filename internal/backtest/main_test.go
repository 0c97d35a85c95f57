package backtest

import (
	"testing"

	"drydock.dev/drydock/internal/soak"
)

func TestMain(m *testing.M) { soak.Checks(m, 10) }
