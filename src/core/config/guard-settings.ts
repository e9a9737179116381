import { ConfigurationError } from '../errors'
import type { JwtAlgorithm } from '../keys'
import { seeTroubleshooting } from '../troubleshooting'
import type { RouterSettings, Settings } from './every-setting'
import { convertText, explained, frozen, inputNames, nearestName, parseJson, refusals } from './settings'
import { settingsConflicts } from './settings-conflicts'
import { settingsSchema } from './settings-schema'

/** Without the secrets, which boot converts to keys. */
export type GuardSettings = Omit<Settings, KeySetting>

type KeySetting = 'jwtSecret' | 'jwtKeys'

/**
 * Pass exactly one source of keys: `jwtSecret`, `jwtKeys` or `jwksUri`. If you pass `accessTokenIssuer`, you need no source, because the
 * guards read the keys from the issuer's metadata. With `tokenDelivery: 'session'` you also need no source.
 *
 * `tokenDelivery` and the names and flags of the cookies must match the router that issues the tokens. You may pass all settings of that
 * router. The guards check the other settings but do not use them.
 */
export interface GuardSettingsInput extends Partial<RouterSettings> {
  /** The URL of the router's key set, such as `https://…/auth/.well-known/jwks.json`. http is allowed only on the loopback. */
  readonly jwksUri?: string | undefined
  /** The algorithms of published keys, with `jwksUri` or with `accessTokenIssuer` alone. Default ES256, RS256 and PS256. */
  readonly algorithms?: readonly JwtAlgorithm[] | string | undefined
}

export type KeySource =
  | { readonly jwtSecret: Settings['jwtSecret'] }
  | { readonly jwtKeys: NonNullable<Settings['jwtKeys']> }
  | { readonly jwksUri: string; readonly algorithms: readonly JwtAlgorithm[] }
  /** The issuer's metadata contains the URL of the keys. */
  | { readonly issuer: string; readonly algorithms: readonly JwtAlgorithm[] }
  | { readonly none: true }

const sources = ['jwtSecret', 'jwtKeys', 'jwksUri'] as const
export const guardSettingNames: readonly string[] = [...inputNames, 'jwksUri', 'algorithms']
const everyAlgorithm: readonly JwtAlgorithm[] = ['ES256', 'RS256', 'PS256']

/** The router's rules, but `jwtSecret` is optional. @throws ConfigurationError with the name and the rule, never a value */
export function resolveGuardSettings(input: GuardSettingsInput): { settings: GuardSettings; source: KeySource } {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw new ConfigurationError('settings must be an object.')
  refuseForeign(Object.keys(input))
  const given = sources.filter((name) => input[name] !== undefined && input[name] !== null && input[name] !== '')
  const needsNone = input.accessTokenIssuer || input.tokenDelivery === 'session'
  if (given.length !== 1 && !(given.length === 0 && needsNone)) throw new ConfigurationError(oneSource(given))
  // `production` has no effect, because no setting that guards use has a default that depends on it.
  const { value, error } = settingsSchema
    .fork('jwtSecret', (rule) => rule.optional())
    .validate(convertText(sourcesBut(given, input)), { abortEarly: false, context: { production: true } })
  if (error) throw new ConfigurationError(refusals(error).join('\n'))
  const conflicts = settingsConflicts(value)
  if (conflicts.length > 0) throw new ConfigurationError(explained(conflicts))
  const { jwtSecret, jwtKeys, ...settings } = frozen(value)
  return { settings: Object.freeze(settings), source: sourceOf(input, { jwtSecret, jwtKeys }, settings) }
}

/** Sources without a value must not reach the schema. */
function sourcesBut(given: readonly string[], input: GuardSettingsInput): Partial<RouterSettings> {
  return Object.fromEntries(Object.entries(input).filter(([name]) => given.includes(name) || !sources.some((source) => source === name)))
}

function refuseForeign(given: readonly string[]): void {
  const foreign = given.find((name) => !guardSettingNames.includes(name))
  if (foreign === undefined) return
  throw new ConfigurationError(
    `createGuards: ${JSON.stringify(foreign.slice(0, 64))} is not a setting; the nearest known one is ${nearestName(foreign, guardSettingNames)}. ${seeTroubleshooting('unknown-names')}`,
  )
}

function oneSource(given: readonly string[]): string {
  const found = given.length === 0 ? 'none is given' : `${given.join(' and ')} are given`
  return `createGuards: settings need exactly one key source, and ${found}; pass jwtSecret (the router's), jwtKeys, jwksUri (where a router with jwtKeys publishes its keys), or only accessTokenIssuer and accessTokenAudience. With tokenDelivery 'session' none is needed.`
}

function sourceOf(
  { jwksUri, algorithms }: GuardSettingsInput,
  { jwtSecret, jwtKeys }: Pick<Settings, KeySetting>,
  { accessTokenIssuer: issuer, tokenDelivery }: GuardSettings,
): KeySource {
  if (jwksUri) return { jwksUri, algorithms: closedList(algorithms) }
  if (tokenDelivery === 'session' && !jwtKeys && !jwtSecret) return { none: true }
  if (issuer !== null && !jwtKeys && !jwtSecret) return { issuer, algorithms: closedList(algorithms) }
  if (algorithms !== undefined && algorithms !== '')
    throw new ConfigurationError(
      'createGuards: algorithms needs jwksUri or accessTokenIssuer, because every other key has its own algorithm; remove it.',
    )
  return jwtKeys ? { jwtKeys } : { jwtSecret }
}

function closedList(given: GuardSettingsInput['algorithms']): readonly JwtAlgorithm[] {
  if (given === undefined || given === '') return everyAlgorithm
  const listed: unknown = typeof given === 'string' ? parseJson(given) : given
  const known = Array.isArray(listed) ? everyAlgorithm.filter((name) => listed.includes(name)) : []
  if (Array.isArray(listed) && known.length > 0 && known.length === listed.length) return Object.freeze(known)
  throw new ConfigurationError(
    `createGuards: algorithms must be a list (as text: a JSON list) of one or more of ${everyAlgorithm.join(', ')}.`,
  )
}
