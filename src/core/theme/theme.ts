import { type Asset, assetOf } from './asset'
import { contrastOf, enoughContrast, readableOn, readColour, textOn } from './contrast'
import { pageScript } from './page-script'
import { type Accents, styleSheet } from './style-sheet'

/** The look of the pages. Use these options so that the pages match your product. */
export interface ThemeOptions {
  /** The product's name. The name appears at the top of every page and in the page title. */
  readonly name: string
  /** The logo: a path of this site, a URL of the public origin, or `data:image/…`. */
  readonly logoUrl?: string
  /** The target of the name at the top: an https URL, a mailto URL or a path. */
  readonly homeUrl?: string
  /** The target of the help link: an https URL, a mailto URL or a path. */
  readonly supportUrl?: string
  /**
   * The colour of buttons and links, as a CSS hex colour. The colour needs a contrast of 4.5:1 against white. The library derives the
   * colour of the dark theme. To set both colours, pass an object. The dark colour needs a contrast of 4.5:1 against `#171c23`.
   */
  readonly accent?: string | { readonly light: string; readonly dark: string }
  /** Your own CSS rules. The style sheet contains your rules after the built-in rules. */
  readonly css?: string
  /** Other origins from which the pages may load files. */
  readonly csp?: PageSources
}

/** Origins for the directives of the content security policy. */
export interface PageSources {
  readonly styleSrc?: readonly string[]
  readonly scriptSrc?: readonly string[]
  readonly imgSrc?: readonly string[]
  readonly fontSrc?: readonly string[]
  readonly connectSrc?: readonly string[]
}

/** The look that every page uses. */
export interface Theme {
  /** Empty if the product has no name. */
  readonly name: string
  readonly logoUrl: string | null
  readonly homeUrl: string | null
  readonly supportUrl: string | null
  readonly sources: PageSources
  readonly style: Asset
  readonly script: Asset
}

/** The background colours of the light theme and the dark theme. */
export const papers = { light: '#ffffff', dark: '#171c23' } as const

const defaultAccent = '#1f5fbf'

/**
 * Returns the theme of the pages.
 * @param options options that `themeFault` has already checked
 */
export function createTheme(prefix: string, defaultName: string, options?: ThemeOptions): Theme {
  const { name = defaultName, logoUrl, homeUrl, supportUrl, css = '', csp = {} } = options ?? {}
  return Object.freeze({
    name,
    logoUrl: logoUrl ?? null,
    homeUrl: homeUrl ?? null,
    supportUrl: supportUrl ?? null,
    sources: csp,
    style: assetOf(prefix, 'css', 'text/css; charset=utf-8', styleSheet(accentsOf(options?.accent), css)),
    script: assetOf(prefix, 'js', 'text/javascript; charset=utf-8', pageScript),
  })
}

function accentsOf(accent: ThemeOptions['accent'] = defaultAccent): Accents {
  const [givenLight, givenDark] = typeof accent === 'string' ? [accent, null] : [accent.light, accent.dark]
  const light = readColour(givenLight) ?? defaultAccent
  const dark = givenDark === null ? readableOn(light, papers.dark, '#ffffff') : (readColour(givenDark) ?? light)
  return { light, onLight: textOn(light), dark, onDark: textOn(dark) }
}

/** Returns what is wrong with an accent colour. The caller writes the beginning of the sentence. Null: the colour is valid. */
export function accentFault(accent: unknown): string | null {
  if (typeof accent === 'string') return colourFault('theme.accent', accent, 'light')
  const { light, dark } = Object(accent) as { light?: unknown; dark?: unknown }
  return colourFault('theme.accent.light', light, 'light') ?? colourFault('theme.accent.dark', dark, 'dark')
}

function colourFault(name: string, given: unknown, theme: 'light' | 'dark'): string | null {
  const colour = readColour(given)
  if (colour === null) return `${name} must be a CSS hex colour such as #1f5fbf`
  const paper = papers[theme]
  const ratio = contrastOf(colour, paper)
  if (ratio >= enoughContrast) return null
  const nearest = readableOn(colour, paper, theme === 'light' ? '#000000' : '#ffffff')
  return `${name} has a contrast of ${ratio.toFixed(2)}:1 against the ${theme} theme's background ${paper}, and text needs ${enoughContrast}:1; the nearest colour that passes is ${nearest}`
}
