import type { Request } from 'express'
import type { AuthContext } from '../context'
import { ValidationError } from '../core/errors'
import { type QueryParameter, string } from '../http/description'
import { queryValues } from '../http/query-parameter'
import { isPassportProvider, type Provider } from '../providers/passport-provider'

/**
 * Returns the hint about the person that a login passes to the provider (OpenID Connect Core section 3.1.2.1). Null: the request has no
 * hint, or the client passes no hint on.
 * @throws ValidationError if the hint was sent twice, or does not have 1 to 320 visible characters
 */
export function readLoginHint(client: Provider, req: Request): string | null {
  if (isPassportProvider(client) || client.loginHint !== true) return null
  const [hint, ...others] = queryValues(req, 'login_hint')
  if (hint === undefined) return null
  if (others.length === 0 && /^[^\p{C}\p{Z}]{1,320}$/u.test(hint)) return hint
  throw new ValidationError({ details: { errors: [{ path: 'login_hint', rule: 'any.invalid' }] } })
}

/**
 * Returns the description of the query parameter `login_hint`, if a provider has the option `loginHint`. Otherwise returns an empty list.
 */
export function loginHintQuery({ providers }: AuthContext): QueryParameter[] {
  const isUsed = [...providers.values()].some((provider) => !isPassportProvider(provider) && provider.loginHint === true)
  return isUsed
    ? [{ name: 'login_hint', description: 'The address or name of the person, for providers with the option `loginHint`.', schema: string }]
    : []
}
