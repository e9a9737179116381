import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import {
  type AppError,
  CsrfValidationFailedError,
  InternalError,
  PayloadTooLargeError,
  ServiceUnavailableError,
  TooManyRequestsError,
  ValidationError,
} from '../core/errors'
import type { TextKey } from '../core/texts/phrase-book'
import { emptyForm, type FormState, type Html, html, notice } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import { readForm } from '../http/input'
import { takeNotice } from '../sessions/cookies'
import type { Fields, Visit } from './page-site'

/** The message of each field. The name `form` stands for the whole form. */
export class FormFault extends Error {
  readonly faults: Readonly<Record<string, TextKey>>
  /** If false, the form shows the page's current values instead of those of the request. */
  readonly keepsValues: boolean
  /** Secrets that stay in the form, so that the person does not type them again. */
  readonly kept: Fields

  constructor(faults: Readonly<Record<string, TextKey>>, { keepsValues = true, kept = {} }: { keepsValues?: boolean; kept?: Fields } = {}) {
    super('a form was refused')
    this.faults = faults
    this.keepsValues = keepsValues
    this.kept = kept
  }
}

/** @throws FormFault with the names of the missing or empty fields */
export function requireFields(fields: Fields, ...names: readonly string[]): void {
  const empty = names.filter((name) => (fields[name] ?? '') === '')
  if (empty.length > 0) throw new FormFault(Object.fromEntries(empty.map((name) => [name, 'problem.required'])))
}

/** Never 401, because that needs the header `WWW-Authenticate`, which is for programs. */
export function statusOf(error: AppError): number {
  if (error instanceof CsrfValidationFailedError) return 403
  return [413, 429, 500, 503].includes(error.status) ? error.status : 400
}

export interface Explaining {
  /** By error code. */
  readonly sentences?: Readonly<Record<string, TextKey>>
  /** Shows why a new password is refused. */
  readonly passwordField?: string
  /** Secrets that stay in the form while the new password is refused. */
  readonly keeps?: readonly string[]
  /** By error code, for example of a wrong password. Default: the whole form. */
  readonly faultFields?: Readonly<Record<string, string>>
}

/** The form contains no secret, except those in `kept` of a FormFault. */
export function refusedForm(reader: Reader, error: AppError | FormFault, fields: Fields, explaining: Explaining = {}): FormState {
  const values = keptValues(fields)
  if (error instanceof FormFault) return { values: error.keepsValues ? { ...values, ...error.kept } : {}, ...split(reader, error.faults) }
  if (error instanceof ValidationError && !explaining.sentences?.[error.code]) {
    const kept = (explaining.keeps ?? []).flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]] as const]))
    return { values: { ...values, ...Object.fromEntries(kept) }, ...invalid(reader, error, explaining) }
  }
  const sentence = sentenceOf(reader, error, explaining)
  const field = explaining.faultFields?.[error.code]
  return field === undefined ? { values, faults: {}, problem: sentence } : { values, faults: { [field]: sentence }, problem: null }
}

export function unreadableForm(reader: Reader, fields: Fields, names: readonly string[]): FormState {
  return {
    values: keptValues(fields),
    faults: Object.fromEntries(names.map((name) => [name, reader.text('problem.twice')])),
    problem: reader.text('problem.form'),
  }
}

function keptValues(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !/password|code|token|credential|form_of/.test(name)))
}

function split(reader: Reader, { form, ...faults }: Readonly<Record<string, TextKey>>): Pick<FormState, 'faults' | 'problem'> {
  const entries = Object.entries(faults).map(([name, key]) => [name, reader.text(key)] as const)
  return { faults: Object.fromEntries(entries), problem: form === undefined ? null : reader.text(form) }
}

function invalid(
  reader: Reader,
  { details, explains }: ValidationError,
  { passwordField }: Explaining,
): Pick<FormState, 'faults' | 'problem'> {
  if (explains) {
    const sentence = reader.read(explains)
    const name = details['rule'] === 'mismatch' ? 'confirm_password' : passwordField
    return name === undefined ? { faults: {}, problem: sentence } : { faults: { [name]: sentence }, problem: null }
  }
  // Every ValidationError of the library has this form.
  const errors = (details['errors'] ?? []) as readonly { path: string; rule: string }[]
  const named = errors.filter(({ path }) => path !== '')
  const faults = Object.fromEntries(named.map(({ path, rule }) => [path, reader.text(sentenceOfRule(rule))]))
  return { faults, problem: named.length === 0 ? reader.text('problem.form') : null }
}

function sentenceOfRule(rule: string): TextKey {
  if (rule === 'any.required' || rule === 'string.empty') return 'problem.required'
  if (rule === 'string.email') return 'problem.email'
  return rule === 'string.max' ? 'problem.too_long' : 'problem.value'
}

function sentenceOf(reader: Reader, error: AppError, { sentences = {} }: Explaining): string {
  const own = sentences[error.code]
  if (own) return reader.text(own)
  if (error instanceof TooManyRequestsError) return tooManySentence(reader, error)
  if (error instanceof CsrfValidationFailedError) return reader.text('problem.other_site')
  if (error instanceof PayloadTooLargeError) return reader.text('problem.too_large')
  if (error instanceof ServiceUnavailableError) return reader.text('problem.later')
  if (error instanceof InternalError) return reader.text('problem.trouble')
  return reader.read(error.detail)
}

export function tooManySentence(reader: Reader, error: TooManyRequestsError): string {
  return reader.text('problem.too_many', { when: whenOf(reader, error) })
}

function whenOf(reader: Reader, { details }: TooManyRequestsError): string {
  const seconds = Number(details['retry_after_seconds'])
  return seconds > 90 ? reader.text('problem.in_minutes', { count: Math.ceil(seconds / 60) }) : reader.text('problem.in_seconds')
}

interface Sent {
  readonly fields: Fields
  /** Sent twice, or converted to another type by a parser of the host. */
  readonly unreadable: readonly string[]
}

/** @throws PayloadTooLargeError if the body is too large; ValidationError if the body is not a form */
export async function readSent(req: Request, res: Response): Promise<Sent> {
  const entries = Object.entries((await readForm(req, res)) as object)
  return {
    fields: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    unreadable: entries.filter(([, value]) => typeof value !== 'string').map(([name]) => name),
  }
}

/** The notice of the previous action comes first. A form with errors has none. */
export function showNotice({ ctx, req, res, reader }: Visit, state: FormState, body: Html): Html {
  const word = state === emptyForm ? takeNotice(ctx, req, res) : null
  return html`${notice(word && reader.text(`notice.${word}`))}${body}`
}

/** A person knows the rule before the first try. */
export function passwordRule({ passwordPolicy }: Pick<AuthContext, 'passwordPolicy'>, reader: Reader): string {
  const { minLength = 12, requireComplexity = false } = passwordPolicy
  return reader.text(requireComplexity ? 'password.rule_complex' : 'password.rule', { min: String(minLength) })
}
