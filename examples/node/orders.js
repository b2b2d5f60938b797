// SPDX-License-Identifier: MIT
//
// orders.js - a program whose time goes to every layer of the machine
//
//	node orders.js FOLDER [SECONDS]
//
// Each round makes orders and prices them in JavaScript, which V8 compiles;
// turns them into JSON and back, in V8's own C++; and writes and reads them in
// many small pieces, which is the kernel's work.
"use strict";
const fs = require("fs");
const path = require("path");

const file = path.join(process.argv[2] || ".", "orders.json");
const seconds = Number(process.argv[3] || 2);
const PIECE = 512;

function random(seed) {
	return (seed * 1103515245 + 12345) % 2147483648;
}

function makeOrders(n) {
	const orders = [];
	let seed = n;

	for (let i = 0; i < n; i++) {
		seed = random(seed);
		orders.push({ id: i, customer: seed % 97,
			items: 1 + seed % 9, cents: 100 + seed % 9900 });
	}
	return orders;
}

function discount(order) {
	let rate = 0;

	for (let step = 0; step < 30; step++)
		rate = (rate * 31 + order.customer + step) % 1009;
	return rate / 10090;
}

function priceOrders(orders) {
	let sum = 0;

	for (const order of orders)
		sum += order.items * order.cents * (1 - discount(order));
	return sum;
}

function saveOrders(orders) {
	const text = Buffer.from(JSON.stringify(orders));
	const fd = fs.openSync(file, "w");

	for (let at = 0; at < text.length; at += PIECE)
		fs.writeSync(fd, text, at, Math.min(PIECE, text.length - at));
	fs.closeSync(fd);
}

function loadOrders() {
	const fd = fs.openSync(file, "r");
	const pieces = [];
	let piece, n;

	do {
		piece = Buffer.alloc(PIECE);
		n = fs.readSync(fd, piece);
		pieces.push(piece.subarray(0, n));
	} while (n > 0);
	fs.closeSync(fd);
	return JSON.parse(Buffer.concat(pieces).toString());
}

function main() {
	const end = Date.now() + 1000 * seconds;
	let rounds = 0, sum = 0;

	for (; Date.now() < end; rounds++) {
		const orders = makeOrders(2000);

		saveOrders(orders);
		sum += priceOrders(loadOrders());
	}
	fs.unlinkSync(file);
	console.log(`${rounds} rounds, ${Math.round(sum / rounds / 100)} a round`);
}

main();
