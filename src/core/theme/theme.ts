import { createHash } from 'node:crypto'
import { pageScript } from './page-script'
import { type Accents, contrastOf, enoughContrast, readableOn, readColour, styleSheet, textOn } from './style-sheet'

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

export interface Theme {
  readonly name: string
  readonly logoUrl: string | null
  readonly homeUrl: string | null
  readonly supportUrl: string | null
  readonly sources: PageSources
  readonly style: Asset
  readonly script: Asset
}

export const papers = { light: '#ffffff', dark: '#171c23' } as const

const defaultAccent = '#1f5fbf'

/** @param options options that `themeFault` has already checked */
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

function accentFault(accent: unknown): string | null {
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

const names = ['name', 'logoUrl', 'homeUrl', 'supportUrl', 'accent', 'css', 'csp']
const sources: readonly (keyof PageSources)[] = ['styleSrc', 'scriptSrc', 'imgSrc', 'fontSrc', 'connectSrc']

export function themeFault(theme: unknown, settings: { readonly publicUrl: string }): string | null {
  if (!isRecord(theme)) return 'Option theme must be an object: { name, logoUrl, homeUrl, supportUrl, accent, css, csp }.'
  const unknown = Object.keys(theme).find((name) => !names.includes(name))
  if (unknown !== undefined) return `Option theme has no ${JSON.stringify(unknown.slice(0, 64))}; it has ${names.join(', ')}.`
  const { name, logoUrl, homeUrl, supportUrl, accent, css, csp } = theme
  if (typeof name !== 'string' || name.trim() === '' || name.length > 64)
    return 'Option theme.name must be the name of your product, 1 to 64 characters.'
  const fault =
    (logoUrl === undefined ? null : logoFault(logoUrl, settings)) ??
    (homeUrl === undefined ? null : placeFault('homeUrl', homeUrl)) ??
    (supportUrl === undefined ? null : placeFault('supportUrl', supportUrl)) ??
    (accent === undefined ? null : accentFault(accent)) ??
    (css === undefined ? null : cssFault(css, settings)) ??
    (csp === undefined ? null : sourcesFault(csp))
  return fault === null ? null : `Option ${fault}.`
}

function logoFault(logoUrl: unknown, { publicUrl }: { readonly publicUrl: string }): string | null {
  const isOwn = typeof logoUrl === 'string' && (isPath(logoUrl) || isOf(publicUrl, logoUrl) || /^data:image\/[a-z+.-]+[;,]/i.test(logoUrl))
  return isOwn
    ? null
    : 'theme.logoUrl must be a path of this site, a URL of the public origin, or data:image/…: the pages load nothing from elsewhere'
}

function placeFault(name: string, place: unknown): string | null {
  const isPlace = typeof place === 'string' && (isPath(place) || /^mailto:[^\s@]+@[^\s@]+$/i.test(place) || isHttps(place))
  return isPlace ? null : `theme.${name} must be an https URL, a mailto address, or a path that starts with one '/'`
}

function cssFault(css: unknown, { publicUrl }: { readonly publicUrl: string }): string | null {
  if (typeof css !== 'string') return 'theme.css must be a text of CSS rules'
  if (css.includes('</')) return "theme.css must not hold '</'"
  // A CSS escape could hide the text that the next checks reject.
  if (/\\/.test(css)) return 'theme.css must not hold a backslash; write the characters themselves'
  if (/@import/i.test(css)) return 'theme.css must not hold @import: the pages load nothing from elsewhere'
  const addresses = [...css.matchAll(/(?:url|image-set|src)\(\s*["']?([^"')]*)/gi)].map(([, address = '']) => address.trim())
  const foreign = addresses.find(
    (address) => !isPath(address) && !isOf(publicUrl, address) && !address.startsWith('data:') && !address.startsWith('#'),
  )
  return foreign === undefined ? null : 'theme.css must not hold url(…) of another origin'
}

function sourcesFault(csp: unknown): string | null {
  if (!isRecord(csp)) return 'theme.csp must be an object of lists of origins'
  for (const [directive, origins] of Object.entries(csp)) {
    if (!sources.some((known) => known === directive))
      return `theme.csp has no ${JSON.stringify(directive.slice(0, 64))}; it has ${sources.join(', ')}`
    if (!Array.isArray(origins) || !origins.every(isOrigin))
      return `theme.csp.${directive} must be a list of origins such as https://cdn.example.com`
  }
  return null
}

function isOrigin(origin: unknown): boolean {
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin && /^https?:[^,;']+$/.test(origin)
}

function isPath(address: string): boolean {
  return /^\/(?![/\\])[\x21\x23-\x26\x28-\x7e]*$/.test(address)
}

function isOf(origin: string, address: string): boolean {
  return origin !== '' && URL.canParse(address) && new URL(address).origin === origin
}

function isHttps(address: string): boolean {
  return URL.canParse(address) && /^https:\/\//i.test(address)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The name depends on the content, so browsers may cache the file for a year. */
export interface Asset {
  /** The full public path. */
  readonly path: string
  /** The path below the prefix. */
  readonly route: string
  readonly type: string
  readonly text: string
}

function assetOf(prefix: string, extension: 'css' | 'js', type: string, text: string): Asset {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const route = `/assets/pages-${hash}.${extension}`
  return Object.freeze({ path: `${prefix}${route}`, route, type, text })
}
