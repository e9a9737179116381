import type { AuthContext } from '../context'
import type { AccessKey } from '../core/keys'
import { shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'

const keySchema = {
  type: 'object',
  properties: { kty: string, kid: string, alg: string, use: string, n: string, e: string, crv: string, x: string, y: string },
  required: ['kty', 'kid', 'alg', 'use'],
}
const keySetSchema = shape('KeySet', { keys: { type: 'array', items: keySchema } })

/**
 * Serves the public keys of `jwtKeys`, so that other services can verify our tokens without our secrets. Without `jwtKeys`, the router has
 * no such route.
 */
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
        // The response is public, and equal for every verifier, so caches may keep it.
        res.setHeader('Cache-Control', 'public, max-age=300')
        res.removeHeader('Pragma')
        sendJson(res, 200, { keys })
      },
    },
  ]
}

/**
 * Returns a key of the key set (RFC 7517 section 4). Copies only public members, so that no private member can leak. Never returns a shared
 * secret.
 */
function publicJwk(accessKey: AccessKey): object[] {
  if (accessKey.kid === null) return []
  const { kid, algorithm: alg, key } = accessKey
  const { kty, n, e, crv, x, y } = key.export({ format: 'jwk' })
  return [kty === 'RSA' ? { kty, kid, alg, use: 'sig', n, e } : { kty, kid, alg, use: 'sig', crv, x, y }]
}
