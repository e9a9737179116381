/** A host of `lib/hosts.mjs` (BENCH_WITH) that listens and is asked nothing. */
import { hosts } from '../lib/hosts.mjs'
import { serve } from '../lib/serve.mjs'

const makeApp = await hosts[process.env.BENCH_WITH]()
await serve(makeApp)
