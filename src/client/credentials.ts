import type { AuthClientOptions, Tokens } from './types.js'

interface Held {
  readonly csrf: string | null
  readonly mode: AuthClientOptions['delivery']
  readonly tokens: Tokens | null
}

/** What the caller set stays. `isOther`: the caller showed a token of its own. */
export function withCredentials(
  { csrf, mode, tokens }: Held,
  request: Request | undefined,
  init: RequestInit,
): RequestInit & { isOther?: boolean } {
  const headers = new Headers(init.headers ?? request?.headers)
  const isBearer = tokens || mode === 'bearer'
  const name = isBearer ? 'Authorization' : 'X-CSRF-Token'
  const isSafe = /^(GET|HEAD|OPTIONS)$/i.test(init.method ?? request?.method ?? 'GET')
  const value = isBearer ? tokens && `Bearer ${tokens.access_token}` : !isSafe && csrf
  const isOther = headers.has(name)
  if (value && !isOther) headers.set(name, value)
  if (isBearer) return { ...init, headers, isOther }
  // A browser would send the header along a redirect to another origin.
  return { credentials: 'include', ...(value && { redirect: 'manual' }), ...init, headers }
}
