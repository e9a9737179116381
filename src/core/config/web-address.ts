/** As a browser sends it. http only on the loopback. No browser sends `*`, which the URL parser accepts in a host name. */
export function isOrigin(text: string): boolean {
  const url = parse(text)
  return url !== null && isProtected(url) && url.origin === text && !text.includes('*')
}

/** Only the app or extension itself has such an origin. */
const appOrigin =
  /^(?:(?:capacitor|tauri):\/\/localhost|ionic:\/\/[a-z\d.-]+|chrome-extension:\/\/[a-p]{32}|moz-extension:\/\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/

export function isTrustableOrigin(text: string): boolean {
  return appOrigin.test(text) || isOrigin(text)
}

/** A web origin, or the key hash of an Android app. */
export function isPasskeyOrigin(text: string): boolean {
  return /^android:apk-key-hash:[\w-]{43}$/.test(text) || isOrigin(text)
}

export function isAtOrBelow(hostname: string, domain: string): boolean {
  return hostname === domain || hostname.endsWith(`.${domain}`)
}

/** An absolute https URL (http only on the loopback), or a path of the same site. */
export function isRedirectTarget(text: string): boolean {
  return isPlainText(text) && (isPath(text) || isAbsoluteAddress(text))
}

/** An absolute URL with `{token}` once, after the host. */
export function isLinkTemplate(text: string): boolean {
  if (!isPlainText(text) || text.split('{token}').length !== 2) return false
  const [one, other] = ['a', 'b'].map((token) => parse(text.replace('{token}', token)))
  return isAbsoluteAddress(text.replace('{token}', 'a')) && one?.origin === other?.origin
}

/** https (http only on the loopback), without credentials. */
export function isAbsoluteAddress(text: string): boolean {
  const url = parse(text)
  // Browsers read 'https:\\host' and 'https:host' in another way than the URL parser, so the text must begin with `http(s)://`.
  return url !== null && isProtected(url) && url.username === '' && url.password === '' && /^https?:\/\/[^/\\]/i.test(text)
}

/**
 * Spelled as the URL parser writes it, because the library compares URIs byte for byte. A custom scheme is a reversed domain of the vendor,
 * so it has a dot (RFC 8252 section 7.1). The dot also excludes schemes that mean something to a browser, such as `javascript:`. `*` and
 * port 0 are written for "any", but no app sends them.
 */
export function isAppRedirect(text: string): boolean {
  if (!isPlainText(text) || text.length > 512 || /[#*]/.test(text) || parse(text)?.href !== text) return false
  return (isAbsoluteAddress(text) && new URL(text).port !== '0') || /^[a-z][a-z\d+-]*(?:\.[a-z\d+-]+)+:\/./.test(text)
}

/** Browsers read '//host' as another site. */
function isPath(text: string): boolean {
  return /^\/(?!\/)/.test(text)
}

/** A header can contain visible ASCII. Browsers read '/\t/host' and '/\host' as '//host', so neither tab nor backslash is allowed. */
function isPlainText(text: string): boolean {
  return text.length <= 2048 && /^[\x21-\x5b\x5d-\x7e]+$/.test(text)
}

function isProtected(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

/** RFC 6761 section 6.3 and RFC 8252 section 7.3. The URL parser has already normalized the host name. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
