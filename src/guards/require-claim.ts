import { ConfigurationError, ForbiddenError } from '../core/errors'
import { describeError, type Logger, withOwnMessage } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import type { AccessTokenClaims } from '../sessions/access-token'
import type { ClaimsOf } from '../sessions/ask-for-claims'
import type { HostTypes } from '../store/host-types'

type Scalar = string | number | boolean | null

/** All claims that a guard can check: the claims of the library and the claims of the host. */
type AnyClaims<Host extends HostTypes> = Host extends { claims: object } ? AccessTokenClaims & ClaimsOf<Host> : Record<string, unknown>

export type ClaimName<Host extends HostTypes> = keyof AnyClaims<Host> & string

type ClaimValue<Host extends HostTypes, Name extends ClaimName<Host>> = Exclude<AnyClaims<Host>[Name], undefined>

/** The value that the claim must have, or a function that gets the value and returns true. */
export type ExpectedClaim<Host extends HostTypes, Name extends ClaimName<Host>> =
  | (unknown extends ClaimValue<Host, Name> ? Scalar : Extract<ClaimValue<Host, Name>, Scalar>)
  | ((value: ClaimValue<Host, Name>) => boolean)

/** The names of the host's roles, if the host declared the names. */
export type RoleOf<Host extends HostTypes> = ClaimsOf<Host> extends { roles?: readonly (infer Role extends string)[] } ? Role : string

/** @throws ForbiddenError if the claims fail the check */
export type ClaimCheck = (claims: object) => void

/** A missing claim is rejected, without a call of a function. @throws ConfigurationError for a wrong name or expected value */
export function claimCheck(name: unknown, expected: unknown, logger: Logger): ClaimCheck {
  if (typeof name !== 'string' || name === '')
    throw new ConfigurationError("requireClaim() needs the name of a claim and the value that it must have: requireClaim('plan', 'pro').")
  const accepts =
    typeof expected === 'function' ? askFunction(name, expected as (value: unknown) => unknown, logger) : equals(name, expected)
  return (claims) => {
    const value = Object.hasOwn(claims, name) ? (claims as Record<string, unknown>)[name] : undefined
    if (value === undefined || !accepts(value)) throw new ForbiddenError({ reason: 'claim' })
  }
}

function equals(name: string, expected: unknown): (value: unknown) => boolean {
  if (expected === null || ['string', 'number', 'boolean'].includes(typeof expected)) return (value) => value === expected
  throw new ConfigurationError(
    `requireClaim(${JSON.stringify(name.slice(0, 64))}, …) needs a text, a number, a boolean, null, or a function of the value that returns true or false.`,
  )
}

/** Only exactly true counts: a promise is truthy and would accept every request. */
function askFunction(name: string, accepts: (value: unknown) => unknown, logger: Logger): (value: unknown) => boolean {
  const tell = (error: unknown) =>
    logger.error(
      { claim: name.slice(0, 64), error: describeError(error) },
      `doorward: the function of requireClaim() failed, so the request was refused. ${seeTroubleshooting('a-claim-is-missing')}`,
    )
  return (value) => {
    try {
      const answer = accepts(value)
      if (answer instanceof Promise) answer.catch(() => undefined)
      if (typeof answer !== 'boolean') throw withOwnMessage(new TypeError('The function of requireClaim() must return true or false.'))
      return answer
    } catch (error) {
      tell(error)
      return false
    }
  }
}

/** @throws ConfigurationError without a role, because the check would reject every request */
export function roleCheck(roles: readonly unknown[]): ClaimCheck {
  if (roles.length === 0 || !roles.every((role) => typeof role === 'string' && role !== ''))
    throw new ConfigurationError("requireRole() needs at least one role, each a text: requireRole('editor', 'admin').")
  return (claims) => {
    const held: unknown = Object.hasOwn(claims, 'roles') ? (claims as { roles?: unknown }).roles : null
    if (!Array.isArray(held) || !roles.some((role) => held.includes(role))) throw new ForbiddenError({ reason: 'role' })
  }
}
