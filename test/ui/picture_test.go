package ui

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// paletteSize is how many colors a picture keeps. A page has few colors, plus their shades at the
// edges of letters.
const paletteSize = 128

// small returns the PNG with only its most frequent colors, which makes it much smaller.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	count := map[color.Color]int{}
	at := full.Bounds()
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(brightness(a), brightness(b)))
	})
	palette := color.Palette(frequent[:min(len(frequent), paletteSize)])
	nearest := map[color.Color]uint8{}
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	reduced := image.NewPaletted(at, palette)
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			reduced.SetColorIndex(x, y, nearest[full.At(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced))
	return out.Bytes()
}

func brightness(c color.Color) uint32 {
	r, g, b, _ := c.RGBA()
	return r<<16 ^ g<<8 ^ b
}
