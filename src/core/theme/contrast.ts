/** A colour in the form `#rrggbb`. */
export type HexColour = `#${string}`

type Channels = readonly [red: number, green: number, blue: number]

/** The minimum contrast between text and its background (WCAG 2.2, 1.4.3). */
export const enoughContrast = 4.5

/** Returns the colour with six digits in lower case; null if the text is not a CSS hex colour. */
export function readColour(text: unknown): HexColour | null {
  if (typeof text !== 'string' || !/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(text)) return null
  const digits = text.slice(1).toLowerCase()
  return `#${digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits}`
}

/** Returns the contrast ratio, from 1 to 21 (WCAG 2.2). */
export function contrastOf(one: HexColour, other: HexColour): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Returns black or white for text on this colour. At least one of the two always has a contrast of 4.5:1. */
export function textOn(colour: HexColour): HexColour {
  return contrastOf(colour, '#ffffff') >= enoughContrast ? '#ffffff' : '#000000'
}

/**
 * Returns the nearest colour with a contrast of 4.5:1 against the background. The function mixes the colour with `towards` (white or
 * black).
 */
export function readableOn(colour: HexColour, background: HexColour, towards: HexColour): HexColour {
  for (let step = 0; step <= 100; step += 1) {
    const mixed = mix(colour, towards, step / 100)
    if (contrastOf(mixed, background) >= enoughContrast) return mixed
  }
  return towards
}

function mix(from: HexColour, to: HexColour, part: number): HexColour {
  const [start, end] = [channelsOf(from), channelsOf(to)]
  const mixed = start.map((value, index) => Math.round(value + ((end[index] ?? 0) - value) * part))
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

function luminanceOf(colour: HexColour): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(colour).map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function channelsOf(colour: HexColour): Channels {
  const value = Number.parseInt(colour.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}
