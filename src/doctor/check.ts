import type { AuthContext } from '../context'
import { AppError } from '../errors'
import { describeError, withOwnMessage } from '../logger'
import type { AuthRouterOptions } from '../options'

/** `error`: somebody cannot sign in, or there is a hole. `warning`: the rest. */
export type FindingLevel = 'error' | 'warning'

/** What a check found. Holds no secret and no value of a row. */
export interface DoctorFinding {
  /** The name of the check, which stays the same (docs/doctor.md). */
  readonly check: string
  readonly level: FindingLevel
  /** What is wrong. */
  readonly what: string
  /** What follows from it. */
  readonly why: string
  /** How to mend it. */
  readonly fix: string
}

/** What `auth.doctor()` found, and what it could not look at. */
export interface DoctorReport {
  /** False: there is a finding of level `error`. */
  readonly ok: boolean
  /** Errors first. Empty where all is well. */
  readonly findings: readonly DoctorFinding[]
  readonly skipped: readonly { readonly check: string; readonly why: string }[]
}

/** What only you can say about your app. */
export interface DoctorOptions {
  /** Your Express app: its `trust proxy` is looked at. */
  readonly app?: {
    /** Reads a setting of the app, as Express has it. */
    get(name: string): unknown
  }
  /** How many processes serve the app. Default: more than one in a worker of `node:cluster`, else one. */
  readonly processes?: number
}

/** What the checks look at. */
export interface Patient {
  readonly ctx: AuthContext
  readonly options: AuthRouterOptions
  readonly isProduction: boolean
  readonly about: DoctorOptions
}

export type Fault = Omit<DoctorFinding, 'check'>
/** Why a check could not be made. */
export interface Skip {
  readonly skipped: string
}

export interface Check {
  readonly name: string
  /** Null: all is well. */
  readonly examine: (patient: Patient) => Result | Promise<Result>
}

export type Result = Fault | readonly Fault[] | Skip | null

export function error(what: string, why: string, fix: string): Fault {
  return { level: 'error', what, why, fix }
}

export function warning(what: string, why: string, fix: string): Fault {
  return { level: 'warning', what, why, fix }
}

/** This machine, which nobody else reaches. */
export function isLoopback(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { hostname } = new URL(address)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\./.test(hostname)
}

/** What a finding says of an error. Of an error that is not ours only its code or kind: its message may hold a password or a value. */
export function sentenceOf(problem: unknown): string {
  if (problem instanceof AppError) return problem.message
  const { message, code, name } = describeError(problem)
  return message ?? code ?? name
}

export function lateAfter(seconds: number): Error {
  return withOwnMessage(new Error(`no answer within ${seconds} seconds`))
}
