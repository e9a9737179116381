import type { RequestHandler } from 'express'
import type Joi from 'joi'
import type { LocalizedText } from '../errors'
import type { SignupSchema } from './host-schema'

/** What the API document says of one line of the route table, besides what its body and the steps before it say themselves. */
export interface Description {
  readonly summary: string
  readonly answers: readonly Answer[]
  /** Beyond those of the steps before it, and of reading its body. */
  readonly refuses?: readonly Refusal[]
  /** A hook of the host's may refuse as it likes, in the same envelope. */
  readonly hostRefuses?: boolean
  /** How a refusal is told: in the envelope unless it says otherwise. */
  readonly refusals?: 'page' | 'redirect'
  readonly query?: readonly QueryParameter[]
  /** What a host asks for besides, in the same JSON body. */
  readonly hostsBody?: SignupSchema | undefined
  /** The fields of a page's form, where the body is one. */
  readonly form?: Joi.ObjectSchema
  /** What the line reads itself; a guard before it says so on its own. */
  readonly credential?: Credential
  /** The name of a route limit past which the line still answers, but does less. A limit that refuses is a step before the line. */
  readonly limit?: string
}

/** What a line answers when it does not refuse. */
export interface Answer {
  readonly status: 200 | 201 | 202 | 204 | 302 | 303 | 400
  readonly description: string
  /** Of a JSON body. */
  readonly schema?: JsonSchema
  readonly isPage?: true
}

/** An error class, as clients meet it. */
export interface Refusal {
  readonly status: number
  readonly code: string
  readonly detail: LocalizedText
}

export type Credential = 'access_token' | 'refresh_cookie' | 'session_cookie'

export interface QueryParameter {
  readonly name: string
  readonly description: string
  readonly schema: JsonSchema
  readonly required?: true
}

/** JSON Schema, draft 2020-12, which is what OpenAPI 3.1 speaks. One with a `title` is told once, by that name. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

export const string: JsonSchema = { type: 'string' }
export const stringOrNull: JsonSchema = { type: ['string', 'null'] }
export const flag: JsonSchema = { type: 'boolean' }
export const instant: JsonSchema = { type: 'string', format: 'date-time' }
export const instantOrNull: JsonSchema = { type: ['string', 'null'], format: 'date-time' }

/** An object whose fields are all there, always. */
export function shape(title: string, properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { title, type: 'object', properties, required: Object.keys(properties) }
}

export const done: Answer = { status: 204, description: 'Done.' }

/** What a step before a line may refuse, and what it asks for. */
interface StepDescription {
  readonly refuses: readonly Refusal[]
  /** Of the session of the request. */
  readonly needs?: 'alive_session' | 'fresh_session'
  readonly credential?: Credential
  /** The name of the route limit that it takes a unit of. */
  readonly limit?: string
}

const steps = new WeakMap<RequestHandler, StepDescription>()

/** Adds a description to a step, for readers of the route table. Returns the step. */
export function describeStep(step: RequestHandler, description: StepDescription): RequestHandler {
  steps.set(step, description)
  return step
}

export function descriptionOf(step: RequestHandler): StepDescription | null {
  return steps.get(step) ?? null
}
