/** An identity provider: a code `u7` is user u7, answered at once. */
import { serve } from '../lib/serve.mjs'

const routes = {
  async '/token'(req) {
    let form = ''
    for await (const chunk of req) form += chunk
    const code = new URLSearchParams(form).get('code') ?? ''
    return /^u\d+$/.test(code) && { access_token: `at-${code}`, token_type: 'Bearer', expires_in: 3600, scope: 'openid email profile' }
  },

  '/userinfo'(req) {
    const sub = /^Bearer at-(u\d+)$/.exec(req.headers.authorization)?.[1]
    return sub && { sub, id: sub, email: `${sub}@example.test`, email_verified: true, name: `User ${sub}` }
  },
}

await serve(() => async (req, res) => {
  const answer = await routes[new URL(req.url, 'http://provider').pathname]?.(req)
  const body = JSON.stringify(answer || { error: 'invalid_grant' })
  res.writeHead(answer ? 200 : 400, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
})
