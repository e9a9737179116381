import type { AuthContext } from '../context'
import type { AccessKey } from '../core/keys'
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
 * For verifiers that only know the issuer: RFC 8414 and OpenID Discovery 1.0. Not without `jwtKeys`: a shared secret is never published.
 */
export function metadataRoutes(ctx: MetadataContext): Route[] {
  return isPublished(ctx)
    ? ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'].map((path) => metadata(ctx, path))
    : []
}

/** For `auth.wellKnown`. RFC 8414 section 3.1 looks at the root first. */
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

const keySchema = {
  type: 'object',
  properties: { kty: string, kid: string, alg: string, use: string, n: string, e: string, crv: string, x: string, y: string },
  required: ['kty', 'kid', 'alg', 'use'],
}
const keySetSchema = shape('KeySet', { keys: { type: 'array', items: keySchema } })

/** Other services can verify our tokens without our secrets. Without `jwtKeys`, there is no such route. */
export function keySetRoutes(ctx: Pick<AuthContext, 'accessKeys'>): Route[] {
  const keys = ctx.accessKeys.flatMap(publicJwk)
  if (keys.length === 0) return []
  return [
    {
      method: 'GET',
      path: '/.well-known/jwks.json',
      describes: {
        summary: 'Get the public keys to verify access tokens (RFC 7517)',
        answers: [{ status: 200, description: 'The key set. Clients may cache it for five minutes.', schema: keySetSchema }],
      },
      handle: (_req, res) => {
        // Public, and equal for every verifier, so caches may keep it.
        res.setHeader('Cache-Control', 'public, max-age=300')
        res.removeHeader('Pragma')
        sendJson(res, 200, { keys })
      },
    },
  ]
}

/** RFC 7517 section 4. Copies only public members, so that no private member can leak. Never returns a shared secret. */
function publicJwk(accessKey: AccessKey): object[] {
  if (accessKey.kid === null) return []
  const { kid, algorithm: alg, key } = accessKey
  const { kty, n, e, crv, x, y } = key.export({ format: 'jwk' })
  return [kty === 'RSA' ? { kty, kid, alg, use: 'sig', n, e } : { kty, kid, alg, use: 'sig', crv, x, y }]
}
