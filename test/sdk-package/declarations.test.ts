import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readDeclarations, shareDeclarations, writeDeclarations } from '../../sdk/build/declarations.ts'

const main = `/**
 * All of it.
 *
 * @packageDocumentation
 */

/** What comes. */
export declare type Message = {
    /** Its text. */
    body: string;
};

/** What goes wrong. */
export declare class Failure extends Error {
}

export { }
`
const other = `import type { Span } from 'tracing';

/** What goes wrong. */
export declare class Failure extends Error {
}

/** What comes. */
declare type Message = {
    /** Its text. */
    body: string;
};

declare type Inner = {};

/** Takes what comes. */
export declare function take(message: Message, inner: Inner): AsyncDisposable;

export { }
`
const files = new Map([
  ['index', readDeclarations(main)],
  ['other', readDeclarations(other)],
])

suite('the declarations of several entries', () => {
  test('are taken apart into what each of them declares', () => {
    const [message, failure] = readDeclarations(main).declarations
    assert.deepEqual([message?.name, message?.comment, message?.isExported], ['Message', '/** What comes. */', true])
    assert.match(
      message?.text ?? '',
      /^export declare type Message = \{\n {4}\/\*\* Its text\. \*\/\n {4}body: string;\n\};$/,
    )
    assert.equal(failure?.name, 'Failure')
  })

  test('exist once: an entry imports what it needs of an earlier one, and exports it if it did', () => {
    assert.equal(
      writeDeclarations(shareDeclarations(files).files.get('other') ?? readDeclarations('')),
      `/// <reference lib="esnext.disposable" />
import type { Span } from 'tracing';
export { Failure } from './index.js';
import type { Message } from './index.js';

declare type Inner = {};

/** Takes what comes. */
export declare function take(message: Message, inner: Inner): AsyncDisposable;

export {};
`,
    )
  })

  test('are named where a program can see them and no entry exports them', () => {
    assert.deepEqual(shareDeclarations(files).unnamed, ['other: Inner'])
  })

  test('are not shared when they only have the same name', () => {
    const differing = new Map([...files, ['third', readDeclarations('export declare type Message = string;')]])
    assert.equal(shareDeclarations(differing).files.get('third')?.declarations.length, 1)
  })
})
