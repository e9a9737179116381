import { accentFault, type PageSources } from './theme'

const names = ['name', 'logoUrl', 'homeUrl', 'supportUrl', 'accent', 'css', 'csp']
const sources: readonly (keyof PageSources)[] = ['styleSrc', 'scriptSrc', 'imgSrc', 'fontSrc', 'connectSrc']

/** Returns what is wrong with the option `theme`, as a sentence. Returns null for a valid theme. */
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
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin && /^https?:/.test(origin)
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
