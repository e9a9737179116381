import type { Settings } from '../core/config/every-setting'
import { TokenExpiredError } from '../core/errors'
import type { AccessKey, KeyList } from '../core/keys'
import type { CookieSite } from '../http/doubled-cookies'
import { verifyAccessToken } from './access-token'
import { readSessionToken } from './session-token'

interface OwnKeys {
  readonly settings: Parameters<typeof verifyAccessToken>[0]['settings'] & Pick<Settings, 'accessCookieName' | 'sessionCookieName'>
  /** Null: the keys are published by another process, so no check is possible without waiting. */
  readonly accessKeys: readonly AccessKey[] | null
  /** Null: a guard without the secret. */
  readonly sessionTokenKeys: KeyList | null
  readonly now: () => Date
  /** Checks of further cookies, by name. */
  readonly more?: Readonly<Record<string, (value: string) => boolean>>
}

/** Returns a function that says whether a key of this deployment made a value of a cookie. An expired value counts too. */
export function ownCookies({ settings, accessKeys, sessionTokenKeys, now, more = {} }: OwnKeys): NonNullable<CookieSite['isOwnCookie']> {
  const isOwn: Readonly<Record<string, (value: string) => boolean>> = {
    ...more,
    [settings.sessionCookieName]: (value) => sessionTokenKeys !== null && readSessionToken(sessionTokenKeys, 'session', value) !== null,
    [settings.accessCookieName]: (value) => accessKeys !== null && isOwnAccessToken({ settings, accessKeys, now }, value),
  }
  return (name, value) => (Object.hasOwn(isOwn, name) ? (isOwn[name]?.(value) ?? false) : false)
}

function isOwnAccessToken(ctx: Parameters<typeof verifyAccessToken>[0], token: string): boolean {
  try {
    return verifyAccessToken(ctx, token) !== null
  } catch (error) {
    return error instanceof TokenExpiredError
  }
}
