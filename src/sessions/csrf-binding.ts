import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { KeyList } from '../core/keys'
import { type CookieScope, clearCookie } from '../http/cookies'
import { cookiePlaceOf, type ProofCookieContext, readProofCookie, setProofCookie } from './cookies'

const name = 'csrf_binding'
export const csrfBindingNames: readonly string[] = [name, `__Host-${name}`]
const maxAgeSeconds = 30 * 86_400

export interface CsrfBinding {
  /** Sets the cookie if the browser has none. */
  ensure(req: Request, res: Response): string
  /** With and without the `__Host-` prefix, because the guard does not know whether cookies are Secure. */
  read(req: Request): readonly string[]
}

interface BindingOptions {
  /** Default lax. */
  readonly sameSite?: CookieScope['sameSite'] | undefined
  /** Default: the system's clock. */
  readonly now?: (() => Date) | undefined
}

export function csrfBinding(keys: KeyList, cookieSecure: boolean, { sameSite, now }: BindingOptions = {}): CsrfBinding {
  const [chosen, other] = [contextOf(keys, cookieSecure, now), contextOf(keys, !cookieSecure, now)]
  return {
    ensure(req, res) {
      const kept = bindingIn(chosen, req)
      if (kept !== null) return kept
      const value = randomBytes(32).toString('base64url')
      setProofCookie(chosen, res, name, value, maxAgeSeconds, sameSite && { sameSite })
      return textOf(chosen, value)
    },
    read: (req) => [bindingIn(chosen, req), bindingIn(other, req)].filter((binding) => binding !== null),
  }
}

/** A CSRF token that an attacker planted becomes invalid. @param sameSite in another site's frame, browsers heed only `none` */
export function forgetCsrfBinding(res: Response, sameSite: CookieScope['sameSite']): void {
  for (const cookieSecure of [true, false]) {
    const { fullName, scope } = cookiePlaceOf(formOf(cookieSecure), name)
    const isThere = (res.req?.headers.cookie ?? '').split(';').some((pair) => pair.trim().startsWith(`${fullName}=`))
    if (isThere) clearCookie(formOf(cookieSecure), res, fullName, { ...scope, sameSite: cookieSecure ? sameSite : 'lax' })
  }
}

type Form = ProofCookieContext

function contextOf(keys: KeyList, cookieSecure: boolean, now = () => new Date()): Form {
  return { ...formOf(cookieSecure), keys: { 'proof-cookie': keys }, now }
}

/** The path is always `/`, because the guard protects the host's pages. */
function formOf(cookieSecure: boolean) {
  return { settings: { cookieSecure, cookieDomain: null }, prefix: '/' }
}

function bindingIn(form: Form, req: Request): string | null {
  const value = readProofCookie(form, req, name)
  return value === null ? null : textOf(form, value)
}

/** Another subdomain can set the cookie without the `__Host-` prefix only. So the text says which of the two had the value. */
function textOf({ settings }: Form, value: string): string {
  return JSON.stringify([settings.cookieSecure, value])
}
