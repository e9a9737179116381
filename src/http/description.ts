import type { RequestHandler } from 'express'
import type Joi from 'joi'
import type { LocalizedText } from '../core/errors'
import type { SignupSchema } from './host-schema'

/** For the OpenAPI document. Does not include the body and the handlers before the route. */
export interface Description {
  readonly summary: string
  readonly answers: readonly Answer[]
  /** Without the errors of the body and of the handlers before the route. */
  readonly refuses?: readonly Refusal[]
  /** A hook of the host can send other errors, in the same envelope. */
  readonly hostRefuses?: boolean
  /** Default: in the JSON error envelope. */
  readonly refusals?: 'redirect'
  /** A page for people, or the form of a page. The OpenAPI document leaves such routes out. */
  readonly isPage?: true
  readonly query?: readonly QueryParameter[]
  readonly hostsBody?: SignupSchema | undefined
  /** The route itself requires at least one of these fields. A rule of the body's schema is not repeated here. */
  readonly needsOneOf?: readonly string[]
  readonly form?: Joi.ObjectSchema
  /** The route itself reads it. A guard before the route has its own description. */
  readonly credential?: Credential
  /** Beyond this limit, the route does less work and does not reject the request. */
  readonly limit?: string
}

export interface Answer {
  readonly status: 200 | 201 | 202 | 204 | 302 | 303 | 400
  readonly description: string
  readonly schema?: JsonSchema
  readonly isPage?: true
}

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

/** Draft 2020-12, as OpenAPI 3.1. The OpenAPI document contains a schema with a `title` only once, under that title. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

export const string: JsonSchema = { type: 'string' }
export const stringOrNull: JsonSchema = { type: ['string', 'null'] }
export const flag: JsonSchema = { type: 'boolean' }
export const instant: JsonSchema = { type: 'string', format: 'date-time' }
export const instantOrNull: JsonSchema = { type: ['string', 'null'], format: 'date-time' }

export function shape(title: string, properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { title, type: 'object', properties, required: Object.keys(properties) }
}

export const done: Answer = { status: 204, description: 'Done.' }

interface StepDescription {
  readonly refuses: readonly Refusal[]
  readonly needs?: 'alive_session' | 'fresh_session'
  readonly credential?: Credential
  readonly limit?: string
}

const steps = new WeakMap<RequestHandler, StepDescription>()

export function describeStep(step: RequestHandler, description: StepDescription): RequestHandler {
  steps.set(step, description)
  return step
}

export function descriptionOf(step: RequestHandler): StepDescription | null {
  return steps.get(step) ?? null
}
