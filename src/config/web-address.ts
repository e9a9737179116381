/** The rules for addresses in settings. All are pure: true when the text may be used as it stands. */

/**
 * `https://app.example.com`, byte for byte what a browser sends as Origin; http only on the loopback. The URL parser takes a `*`
 * in a host name, and no browser sends one: a wildcard would match nobody.
 */
export function isOrigin(text: string): boolean {
  const url = parse(text)
  return url !== null && isProtected(url) && url.origin === text && !text.includes('*')
}

/** What a browser or Android names as the place that a passkey is used from. */
export function isPasskeyOrigin(text: string): boolean {
  return /^android:apk-key-hash:[\w-]{43}$/.test(text) || isOrigin(text)
}

/** `id.example.com` is below `example.com`. */
export function isAtOrBelow(hostname: string, domain: string): boolean {
  return hostname === domain || hostname.endsWith(`.${domain}`)
}

/** Where a browser may be sent: an absolute https URL (http only on the loopback), or a path of this site. */
export function isRedirectTarget(text: string): boolean {
  return isPlainText(text) && (isPath(text) || isAbsoluteAddress(text))
}

/** The address of a mailed link: absolute, with `{token}` once, and never where it would choose the host. */
export function isLinkTemplate(text: string): boolean {
  if (!isPlainText(text) || text.split('{token}').length !== 2) return false
  const [one, other] = ['a', 'b'].map((token) => parse(text.replace('{token}', token)))
  return isAbsoluteAddress(text.replace('{token}', 'a')) && one?.origin === other?.origin
}

/** An absolute https URL (http only on the loopback), without credentials. */
export function isAbsoluteAddress(text: string): boolean {
  const url = parse(text)
  // The URL parser repairs 'https:\\host' and 'https:host'; what browsers read differently is refused.
  return url !== null && isProtected(url) && url.username === '' && url.password === '' && /^https?:\/\/[^/\\]/i.test(text)
}

/**
 * Where an app that keeps its own tokens is sent back to, as the URL parser writes it: compared byte for byte. A custom scheme is a
 * domain of the app's maker in reverse, so that it has a dot and no browser gives it a meaning (RFC 8252 section 7.1).
 */
export function isAppRedirect(text: string): boolean {
  if (!isPlainText(text) || text.length > 512 || text.includes('#') || parse(text)?.href !== text) return false
  return isAbsoluteAddress(text) || /^[a-z][a-z\d+-]*(?:\.[a-z\d+-]+)+:\/./.test(text)
}

/** Exactly one leading slash: browsers read '//host' as another site. */
function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text)
}

/** Visible ASCII, which a header can hold, without the backslash: browsers read '/\t/host' and '/\host' as '//host'. */
function isPlainText(text: string): boolean {
  return text.length <= 2048 && /^[\x21-\x5b\x5d-\x7e]+$/.test(text)
}

function isProtected(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

/** RFC 6761 section 6.3 and RFC 8252 section 7.3; the URL parser has already written the address in its normal form. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
