import type { Request } from 'express'
import type { AuthContext } from '../context'
import { shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJson, sendRedirect } from '../http/send'
import { password } from './account/password'
import { security } from './account/security'

/** For `auth.wellKnown`: password managers read these at the root of the site to find our pages. */
export function wellKnownRoutes(ctx: AuthContext): Route[] {
  const { pagesEnabled, passkeysEnabled } = ctx.settings
  if (!pagesEnabled) return []
  return [...(password.isThere(ctx) ? [changePassword(ctx)] : []), ...(passkeysEnabled ? [passkeyEndpoints(ctx)] : [])]
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
