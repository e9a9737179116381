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
  const isSafe = /^(GET|HEAD|OPTIONS)$/i.test(init.method ?? request?.method ?? 'GET')
  if (tokens || mode === 'bearer') {
    if (headers.has('Authorization')) return { ...init, isOther: true }
    if (tokens) headers.set('Authorization', `Bearer ${tokens.access_token}`)
    return { ...init, headers }
  }
  if (isSafe || !csrf) return { credentials: 'include', ...init, headers }
  if (!headers.has('X-CSRF-Token')) headers.set('X-CSRF-Token', csrf)
  // A browser would send the header along a redirect to another origin.
  return { credentials: 'include', redirect: 'manual', ...init, headers }
}
