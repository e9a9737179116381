import type { AuthContext } from '../context'
import { shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'

type MetadataContext = Pick<AuthContext, 'accessKeys' | 'settings' | 'prefix'>

const metadataSchema = shape('AuthorizationServerMetadata', {
  issuer: string,
  jwks_uri: string,
  response_types_supported: { type: 'array', items: string },
  grant_types_supported: { type: 'array', items: string },
})

/**
 * Serves the URL of our keys, for verifiers that only know the issuer. The first path is from RFC 8414, and the second path is from OpenID
 * Discovery 1.0. The routes require `accessTokenIssuer` and `jwtKeys`. Without `jwtKeys`, doorward has only a shared secret, which it never
 * publishes.
 */
export function metadataRoutes(ctx: MetadataContext): Route[] {
  return isPublished(ctx)
    ? ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'].map((path) => metadata(ctx, path))
    : []
}

/** Serves the metadata also at the root of the site, for `auth.wellKnown`. RFC 8414 section 3.1 looks at the root first. */
export function rootMetadataRoutes(ctx: MetadataContext): Route[] {
  const { accessTokenIssuer } = ctx.settings
  if (accessTokenIssuer === null || !isPublished(ctx)) return []
  const path = new URL(accessTokenIssuer).pathname.replace(/\/$/, '')
  const paths = [`/.well-known/oauth-authorization-server${path}`, `${path}/.well-known/openid-configuration`]
  return paths.filter((one) => one.startsWith('/.well-known/')).map((one) => metadata(ctx, one))
}

function isPublished({ accessKeys, settings }: MetadataContext): boolean {
  return settings.accessTokenIssuer !== null && accessKeys.some(({ kid }) => kid !== null)
}

function metadata(ctx: MetadataContext, path: string): Route {
  return {
    method: 'GET',
    path,
    describes: {
      summary: 'Get the issuer of the access tokens and the URL of the keys (RFC 8414)',
      answers: [{ status: 200, description: 'The metadata. Clients may cache it for five minutes.', schema: metadataSchema }],
    },
    handle: (_req, res) => {
      res.setHeader('Cache-Control', 'public, max-age=300')
      res.removeHeader('Pragma')
      sendJson(res, 200, metadataOf(ctx))
    },
  }
}

function metadataOf({ settings, prefix }: MetadataContext): object {
  const issuer = String(settings.accessTokenIssuer)
  const origin = settings.publicUrl || new URL(issuer).origin
  return { issuer, jwks_uri: `${origin}${prefix}/.well-known/jwks.json`, response_types_supported: [], grant_types_supported: [] }
}
