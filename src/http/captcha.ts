import type { Request } from 'express'
import { ConfigurationError } from '../core/errors'
import type { PageSources } from '../core/theme/theme'
import type { GuardedAction } from './guard-request'

/** A check that a person, and no script, sends a form. `turnstile()` and `proofOfWork()` make one. */
export interface Captcha {
  /**
   * True: the answer is right. It is called only with an answer of 1 to 4,096 characters. If it throws or takes longer than 5 seconds, the
   * request gets 503.
   */
  readonly verify: (answer: string, req: Request, about: { action: GuardedAction }) => Promise<boolean>
  /** The widget for our pages, as HTML. `nonce` is for its scripts and styles. Required with `pagesEnabled`. */
  readonly html?: (nonce: string, about: { action: GuardedAction; locale: string }) => string
  /** Further https origins that the widget needs. They count only for pages that show the widget. */
  readonly csp?: CaptchaSources
  /** The name of the form field with the answer. Default `captcha`. In JSON the name is always `captcha`. */
  readonly field?: string
  /** True: while the check is not available, requests pass without it. Default false. */
  readonly failOpen?: boolean
}

export interface CaptchaSources extends PageSources {
  readonly frameSrc?: readonly string[]
  readonly workerSrc?: readonly string[]
}

/** Decides for each request whether it needs a captcha. It does not learn the address. */
export type CaptchaWhen = (req: Request, about: { action: GuardedAction }) => boolean | Promise<boolean>

/** @throws ConfigurationError */
export function checkCaptcha(
  { captcha, captchaWhen }: { captcha?: unknown; captchaWhen?: unknown },
  { pagesEnabled, hostFields = [] }: { readonly pagesEnabled: boolean; readonly hostFields?: Iterable<string> | undefined },
): void {
  const fault = captcha === undefined ? whenFault(captchaWhen) : captchaFault(captcha, pagesEnabled, [...fieldsOfForms, ...hostFields])
  if (fault !== null) throw new ConfigurationError(fault)
}

function whenFault(captchaWhen: unknown): string | null {
  return captchaWhen === undefined ? null : 'Option captchaWhen needs the option captcha, because it decides only when that one is asked.'
}

/** Of the forms that can show the widget. */
const fieldsOfForms = ['email', 'password', 'name', 'remember', 'return_to', 'credential', 'challenge_token', 'captcha_for']

function captchaFault(captcha: unknown, pagesEnabled: boolean, taken: readonly string[]): string | null {
  const { verify, html, csp = {}, field = 'captcha', failOpen = false } = Object(captcha) as Record<string, unknown>
  if (typeof verify !== 'function') return 'Option captcha needs verify, a function of an answer and a request; turnstile() makes one.'
  if (html !== undefined && typeof html !== 'function') return 'Option captcha.html must be a function that returns HTML.'
  if (html === undefined && pagesEnabled) return 'Option captcha needs html beside pagesEnabled, because our forms must show the widget.'
  if (typeof field !== 'string' || !/^[A-Za-z][\w-]{0,63}$/.test(field)) return 'Option captcha.field must be the name of a form field.'
  if (taken.includes(field)) return `Option captcha.field must not be ${field}: a form has a field of this name. Choose another name.`
  if (typeof failOpen !== 'boolean') return 'Option captcha.failOpen must be true or false.'
  return cspFault(csp)
}

const directives: readonly (keyof CaptchaSources)[] = ['styleSrc', 'scriptSrc', 'imgSrc', 'fontSrc', 'connectSrc', 'frameSrc', 'workerSrc']

function cspFault(csp: unknown): string | null {
  for (const [directive, origins] of Object.entries(Object(csp) as object)) {
    if (!directives.some((known) => known === directive))
      return `Option captcha.csp has no ${JSON.stringify(directive.slice(0, 64))}; it has ${directives.join(', ')}.`
    if (!Array.isArray(origins) || !origins.every(isHttpsOrigin))
      return `Option captcha.csp.${directive} must be a list of https origins such as https://captcha.example.com.`
  }
  return null
}

function isHttpsOrigin(origin: unknown): boolean {
  return typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin && /^https:\/\/[^*;,']+$/.test(origin)
}
