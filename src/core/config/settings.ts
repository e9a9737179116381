import type Joi from 'joi'
import { ConfigurationError } from '../errors'
import { seeTroubleshooting } from '../troubleshooting'
import type { JwtKey, RouterSettings, Settings, SettingsInput } from './every-setting'
import { settingsConflicts } from './settings-conflicts'
import { settingNames, settingsSchema } from './settings-schema'

export const inputNames: readonly (keyof SettingsInput)[] = [...settingNames, 'oauthRedirectBaseUrl']

/** Contains the older name, because a host may know only that one. */
export const publicUrlNames = 'publicUrl (AUTH_PUBLIC_URL; older name oauthRedirectBaseUrl, OAUTH_REDIRECT_BASE_URL)'

/** `oauthStateTtlSeconds` -> `AUTH_OAUTH_STATE_TTL_SECONDS`. The variable of `oauthRedirectBaseUrl` has no prefix `AUTH_`. */
export function environmentVariable(setting: keyof SettingsInput): string {
  const upper = setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
  return setting === 'oauthRedirectBaseUrl' ? upper : `AUTH_${upper}`
}

/** @throws ConfigurationError with the name and the rule of each wrong setting, never a value */
export function resolveSettings(input: RouterSettings, environment: { production: boolean }): Settings {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw new ConfigurationError('settings must be an object.')
  refuseUnknown(Object.keys(input))
  const { value, error } = settingsSchema.validate(convertText(input), { abortEarly: false, context: environment })
  if (error) throw new ConfigurationError(refusals(error).join('\n'))
  const conflicts = settingsConflicts(value)
  if (conflicts.length > 0) throw new ConfigurationError(explained(conflicts))
  return frozen(value)
}

export function frozen(settings: Settings): Settings {
  return Object.freeze({
    ...settings,
    jwtSecret: Array.isArray(settings.jwtSecret) ? Object.freeze([...settings.jwtSecret]) : settings.jwtSecret,
    trustedOrigins: Object.freeze([...settings.trustedOrigins]),
    webauthnOrigins: Object.freeze([...settings.webauthnOrigins]),
    appRedirects: Object.freeze([...settings.appRedirects]),
    signupWith: Object.freeze([...settings.signupWith]),
    accessTokenAudience: Array.isArray(settings.accessTokenAudience)
      ? Object.freeze([...settings.accessTokenAudience])
      : settings.accessTokenAudience,
    jwtKeys: frozenKeys(settings.jwtKeys),
  })
}

function frozenKeys(keys: readonly JwtKey[] | null): readonly JwtKey[] | null {
  return keys && Object.freeze(keys.map((key) => Object.freeze({ ...key })))
}

function refuseUnknown(names: readonly string[]): void {
  for (const name of names) {
    if (inputNames.some((known) => known === name)) continue
    throw new ConfigurationError(
      `Unknown setting ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, inputNames)}. ${seeTroubleshooting('unknown-names')}`,
    )
  }
}

/** Renames the older name of `publicUrl`. @throws ConfigurationError if both names have values, and the values differ */
export function convertText(input: Partial<RouterSettings>): Record<string, unknown> {
  const { oauthRedirectBaseUrl, ...settings } = input
  const publicUrl = oneValue(settings.publicUrl, oauthRedirectBaseUrl)
  const values: Partial<RouterSettings> = publicUrl === undefined ? settings : { ...settings, publicUrl }
  const given = settingNames.filter((name) => Object.hasOwn(values, name) && values[name] !== '' && values[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, fromText(settingsSchema.extract(name).type, values[name])]))
}

function oneValue(publicUrl: string | undefined, older: string | undefined): string | undefined {
  if (!publicUrl || !older || publicUrl === older) return publicUrl || older
  throw new ConfigurationError(
    'publicUrl (AUTH_PUBLIC_URL) and oauthRedirectBaseUrl (OAUTH_REDIRECT_BASE_URL) are two names of one setting and have different values; keep publicUrl. ' +
      seeTroubleshooting('a-wrong-setting'),
  )
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Converts only clear numbers, booleans and lists. The schema rejects any other text. */
function fromText(type: string | undefined, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (type === 'number') return /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value
  if (type === 'boolean') return booleans.get(value) ?? value
  if (type === 'array') return parseJson(value)
  if (type === 'alternatives') return listOr(value)
  return value
}

function listOr(text: string): unknown {
  const parsed = parseJson(text)
  return Array.isArray(parsed) ? parsed : text
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text // The text is not JSON. The schema rejects the text and names the setting.
  }
}

/** A line contains only names and descriptions, because Joi's messages contain the values. */
export function refusals(error: Joi.ValidationError): string[] {
  const names = new Set(error.details.map(({ path }) => settingNames.find((name) => name === path[0])))
  return [...names].flatMap((name) => (name ? [`${refusal(name)}${whatIsWrong(error, name)} ${helpWith(name)}`] : []))
}

export function explained(conflicts: readonly string[]): string {
  return conflicts.map((conflict) => `${conflict} ${seeTroubleshooting('a-wrong-setting')}`).join('\n')
}

function helpWith(name: keyof Settings): string {
  if (name === 'jwtSecret') return seeTroubleshooting('secret')
  return name === 'trustedOrigins' ? seeTroubleshooting('trusted-origins') : seeTroubleshooting('a-wrong-setting')
}

function whatIsWrong(error: Joi.ValidationError, name: keyof Settings): string {
  return entries(error, name) || (name === 'jwtSecret' ? secretFault(error) : '')
}

/** A missing secret needs another fix than a short secret. */
function secretFault({ details }: Joi.ValidationError): string {
  const value: unknown = details.find(({ path: [first] }) => first === 'jwtSecret')?.context?.value
  if (value === undefined || value === null) return ' It is missing: no value was passed, or the variable is unset or empty.'
  if (typeof value !== 'string') return ' It is no text.'
  return Buffer.byteLength(value, 'utf8') < 32 ? ' It is too short.' : ' It looks like a placeholder, or like a broken list.'
}

function entries({ details }: Joi.ValidationError, name: keyof Settings): string {
  const places = new Set(details.flatMap(({ path: [first, place] }) => (first === name && typeof place === 'number' ? [place + 1] : [])))
  return places.size === 0 ? '' : ` Wrong: entry ${[...places].join(', entry ')}.`
}

function refusal(name: keyof Settings): string {
  const flags = settingsSchema.extract(name).describe().flags as { description?: string } | undefined // Joi documents an object
  const named = name === 'publicUrl' ? publicUrlNames : `${name} (${environmentVariable(name)})`
  return `Setting ${named} must be ${flags?.description}.`
}

/** A setting among the options, or an option among the settings. @throws ConfigurationError for a misplaced name */
export function refuseMisplaced(
  where: string,
  options: object,
  { optionNames, settingNames }: { optionNames: readonly string[]; settingNames: readonly string[] },
): void {
  const { settings } = options as { settings?: unknown } // `settings` can have any type
  const setting = Object.keys(options).find((name) => settingNames.includes(name) && !optionNames.includes(name))
  if (setting !== undefined)
    throw new ConfigurationError(`${where}: ${setting} belongs into settings: ${where}({ settings: { ${setting}: … } }). ${see}`)
  const option = Object.keys(Object(settings)).find((name) => optionNames.includes(name) && !settingNames.includes(name))
  if (option !== undefined)
    throw new ConfigurationError(`${where}: ${option} belongs beside settings: ${where}({ ${option}: …, settings: { … } }). ${see}`)
}

const see = seeTroubleshooting('misplaced-option')

/** By the fewest edits. Ignores letter case and separators. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name)
  let best: { name: string; distance: number } | undefined
  for (const candidate of known) {
    const distance = editDistance(wanted, plain(candidate))
    if (!best || distance < best.distance) best = { name: candidate, distance }
  }
  return best?.name
}

function plain(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replace(/^auth_/, '')
    .replace(/[^a-z0-9]/g, '')
}

/** Levenshtein. A missing character counts half, because hosts often shorten a name, such as `accessTokenTtl`. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index / 2)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 0.5))
    }
    row = next
  }
  return row[to.length] ?? 0
}
