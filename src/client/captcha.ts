/**
 * Solves a puzzle of `proofOfWork()`. The answer is the field `captcha` of one request, within ten minutes. It takes a moment of the
 * browser's time, and needs https or localhost.
 * @param action what the answer is for: `signup`, `login`, `link` or `email_login`
 * @throws Error if the router gives no puzzle
 */
export async function solveCaptcha(baseUrl: string, action: 'signup' | 'login' | 'link' | 'email_login'): Promise<string> {
  const response = await fetch(`${baseUrl.replace(/\/$/, '')}/captcha?action=${action}`)
  if (!response.ok) throw new Error(`no puzzle: status ${response.status}`)
  const { puzzle, bits } = (await response.json()) as { puzzle: string; bits: number }
  const encoder = new TextEncoder()
  const hash = (n: number) => crypto.subtle.digest('SHA-256', encoder.encode(`${puzzle}.${n}`))
  for (let first = 0; ; first += 512) {
    const hashes = await Promise.all(Array.from({ length: 512 }, (_, place) => hash(first + place)))
    const found = hashes.findIndex((one) => new DataView(one).getUint32(0) >>> (32 - bits) === 0)
    if (found !== -1) return `${puzzle}.${first + found}`
  }
}
