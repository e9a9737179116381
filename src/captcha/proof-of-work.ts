import { createHash, randomBytes } from 'node:crypto'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { ConfigurationError } from '../core/errors'
import type { KeyList } from '../core/keys'
import type { Captcha } from '../http/captcha'
import { instant, shape, string } from '../http/description'
import type { GuardedAction } from '../http/guard-request'
import { validate } from '../http/input'
import { queryParameter } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'
import type { Markers } from '../rate-limits/markers'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../sessions/challenge'
import { publicOperation } from '../sessions/operation'

/** The router's own part of the puzzles. */
interface PuzzleTools {
  readonly keys: KeyList
  /** The puzzles that were solved, over all processes. */
  readonly used: Markers
  readonly now: () => Date
  /** The full public path of the mount. */
  readonly prefix: string
}

interface PuzzleCaptcha extends Captcha {
  readonly issue: (action: GuardedAction) => { puzzle: string; bits: number; expiresAt: Date }
}

const ofRouter = Symbol('doorward.proof-of-work')

const seconds = 600
const actions: readonly GuardedAction[] = ['signup', 'login', 'link', 'email_login']

/**
 * A captcha without a third party: the browser computes for a moment. It makes a flood of sign-ups expensive, but stops no single script.
 * @param options.bits 8 to 26, default 18: each bit doubles the work of the browser
 * @throws ConfigurationError for another number of bits
 */
export function proofOfWork({ bits = 18 }: { bits?: number } = {}): Captcha {
  if (!Number.isInteger(bits) || bits < 8 || bits > 26) throw new ConfigurationError('proofOfWork() takes bits from 8 to 26.')
  const alone: Captcha = {
    verify: () => Promise.reject(new ConfigurationError('proofOfWork() works only as the option captcha of createAuthRouter().')),
    html: () => '',
  }
  const make = (given: Captcha, tools: PuzzleTools) => {
    if (given.verify === alone.verify && given.html === alone.html) return { ...given, ...puzzleCaptcha(bits, given.field, tools) }
    throw new ConfigurationError('Option captcha: proofOfWork() makes verify and html itself; set only field, csp and failOpen beside it.')
  }
  return Object.assign(alone, { [ofRouter]: make })
}

/** The captcha of one router: `proofOfWork()` gets its keys and counters. Members that the host adds to it count. */
export function captchaOfRouter(captcha: Captcha | undefined, tools: PuzzleTools): Captcha | null {
  if (!captcha) return null
  const { [ofRouter]: make } = captcha as { [ofRouter]?: (given: Captcha, tools: PuzzleTools) => Captcha }
  return make?.(captcha, tools) ?? captcha
}

/** The answer is `<puzzle>.<n>`, whose SHA-256 begins with `bits` bits of 0. */
function puzzleCaptcha(bits: number, field = 'captcha', { keys, used, now, prefix }: PuzzleTools): PuzzleCaptcha {
  return {
    async verify(answer, _req, { action }) {
      const end = answer.lastIndexOf('.')
      const claims = readPrivateToken(keys, answer.slice(0, end), { typ: 'captcha', at: now() })
      if (claims?.['act'] !== action || !/^\d{1,16}$/.test(answer.slice(end + 1)) || !beginsWithZeros(answer, bits)) return false
      return used.claim(String(claims['jti']), Number(claims['exp']))
    },
    html: (_nonce, { action }) => `<input type="hidden" name="${field}" data-puzzle="${prefix}/captcha?action=${action}">`,
    issue(action) {
      const iat = epochSeconds(now())
      const exp = iat + seconds
      const jti = randomBytes(16).toString('base64url')
      return { puzzle: signPrivateToken(keys[0], { typ: 'captcha', act: action, jti, iat, exp }), bits, expiresAt: new Date(exp * 1000) }
    },
  }
}

function beginsWithZeros(text: string, bits: number): boolean {
  return createHash('sha256').update(text).digest().readUInt32BE(0) >>> (32 - bits) === 0
}

const query = Joi.object<{ action: GuardedAction }>({ action: Joi.valid(...actions).required() })

/** None unless the captcha is `proofOfWork()`. */
export function captchaRoutes(ctx: AuthContext): Route[] {
  const { captcha } = ctx
  if (!captcha || !('issue' in captcha)) return []
  const { issue } = captcha as PuzzleCaptcha
  return [
    publicOperation(ctx, {
      method: 'GET',
      path: '/captcha',
      summary: 'Get a puzzle for the captcha',
      answers: [
        {
          status: 200,
          description: 'Send `<puzzle>.<n>` as `captcha`, where the first `bits` bits of its SHA-256 are 0.',
          schema: shape('CaptchaPuzzle', { puzzle: string, bits: { type: 'integer' }, expires_at: instant }),
        },
      ],
      query: [{ name: 'action', description: 'What the answer is for.', schema: { enum: actions }, required: true }],
      limit: 'captcha',
      handle: (req, res) => {
        const { action } = validate(query, { action: queryParameter(req, 'action', 32) ?? undefined })
        const { puzzle, expiresAt, ...rest } = issue(action)
        res.setHeader('Cache-Control', 'no-store')
        sendJson(res, 200, { puzzle, ...rest, expires_at: expiresAt.toISOString() })
      },
    }),
  ]
}
