import { join } from 'node:path'
import ts from 'typescript'

/** How an app resolves modules: Node's ways, or a bundler's. */
export type Resolution = 'node16' | 'nodenext' | 'bundler'

const resolutions: Readonly<Record<Resolution, Pick<ts.CompilerOptions, 'module' | 'moduleResolution'>>> = {
  node16: { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 },
  nodenext: { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
}

/** What is wrong with these files of a strict app, the declarations of every package included. */
export function typeErrorsIn(folder: string, files: readonly string[], resolution: Resolution): string[] {
  const program = ts.createProgram(
    files.map((file) => join(folder, file)),
    {
      ...resolutions[resolution],
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2022.d.ts'],
      types: ['node'],
      typeRoots: [join(folder, 'node_modules/@types')],
      strict: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      esModuleInterop: true,
      noEmit: true,
    },
  )
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ file, messageText }) => `${file?.fileName.slice(folder.length)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}
