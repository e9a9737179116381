import type { Request } from 'express'
import type { AuthContext } from '../context'
import { shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJson, sendRedirect } from '../http/send'
import { relatedOrigins } from '../passkeys/webauthn/ceremonies'
import { password } from './account/password'
import { security } from './account/security'

/** For `auth.wellKnown`, at the root of the site: password managers find our pages, and browsers the related origins of passkeys. */
export function wellKnownRoutes(ctx: AuthContext): Route[] {
  const { pagesEnabled, passkeysEnabled } = ctx.settings
  return [
    ...(pagesEnabled && password.isThere(ctx) ? [changePassword(ctx)] : []),
    ...(pagesEnabled && passkeysEnabled ? [passkeyEndpoints(ctx)] : []),
    ...(passkeysEnabled ? relatedOriginsRoute(relatedOrigins(ctx.settings)) : []),
  ]
}

/** Web Authentication Level 3, section 5.11. A browser asks only the RP id's own host. */
function relatedOriginsRoute(origins: readonly string[]): Route[] {
  if (origins.length === 0) return []
  return [
    {
      method: 'GET',
      path: '/.well-known/webauthn',
      describes: {
        summary: 'The other sites that may use the passkeys of this one',
        answers: [
          { status: 200, description: 'The origins.', schema: shape('RelatedOrigins', { origins: { type: 'array', items: string } }) },
        ],
      },
      handle: (_req, res) => sendJson(res, 200, { origins }),
    },
  ]
}

/** https://w3c.github.io/webappsec-change-password-url/ */
function changePassword(ctx: AuthContext): Route {
  return {
    method: 'GET',
    path: '/.well-known/change-password',
    describes: { summary: 'Go to the page where a person changes the password', answers: [{ status: 302, description: 'To the page.' }] },
    // The Host header must not determine the URL.
    handle: (_req, res) => sendRedirect(res, `${ctx.settings.publicUrl}${ctx.prefix}${password.path}`),
  }
}

/** https://www.w3.org/TR/passkey-endpoints/ */
function passkeyEndpoints(ctx: AuthContext): Route {
  return {
    method: 'GET',
    path: '/.well-known/passkey-endpoints',
    describes: {
      summary: 'The pages where a person creates and manages passkeys',
      answers: [
        { status: 200, description: 'The URLs of the pages.', schema: shape('PasskeyEndpoints', { enroll: string, manage: string }) },
      ],
    },
    handle: (req, res) =>
      sendJson(res, 200, {
        enroll: addressOf(ctx, req, '/account/security/passkeys/add'),
        manage: addressOf(ctx, req, security.path),
      }),
  }
}

/** Without `publicUrl`, the origin of the request. */
function addressOf({ settings: { publicUrl }, prefix }: AuthContext, req: Request, path: string): string {
  return `${publicUrl || `${req.protocol}://${req.headers.host}`}${prefix}${path}`
}
